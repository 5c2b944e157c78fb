"""The TOML specification of a deployment: read, checked all at once, written out, built into objects."""

from hushuffle.specification.building import Adversaries, build_adversaries, build_protocol
from hushuffle.specification.collection import CollectionSpecification, load_collection, parse_collection
from hushuffle.specification.plan import AggregateQuery, KMeansQuery, PlanSpecification
from hushuffle.specification.plan_reading import load_plan, parse_plan
from hushuffle.specification.population import CountedPopulation, DataPopulation, People
from hushuffle.specification.reach import Audiences, ReachPopulation
from hushuffle.specification.reading import load, parse
from hushuffle.specification.specification import Specification, json_schema, schema_text

__all__ = [
    "Adversaries",
    "AggregateQuery",
    "Audiences",
    "CollectionSpecification",
    "CountedPopulation",
    "DataPopulation",
    "KMeansQuery",
    "People",
    "PlanSpecification",
    "ReachPopulation",
    "Specification",
    "build_adversaries",
    "build_protocol",
    "json_schema",
    "load",
    "load_collection",
    "load_plan",
    "parse",
    "parse_collection",
    "parse_plan",
    "schema_text",
]
