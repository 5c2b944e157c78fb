"""Read, check and write the TOML specification of a deployment, and build its objects."""

from hushuffle.specification.population import CountedPopulation, DataPopulation, People
from hushuffle.specification.reach import Audiences, ReachPopulation
from hushuffle.specification.reading import Collection, load, load_collection, parse, parse_collection
from hushuffle.specification.schema import json_schema, schema_text
from hushuffle.specification.specification import Adversaries, Specification, build_adversaries, build_protocol

__all__ = [
    "Adversaries",
    "Audiences",
    "Collection",
    "CountedPopulation",
    "DataPopulation",
    "People",
    "ReachPopulation",
    "Specification",
    "build_adversaries",
    "build_protocol",
    "json_schema",
    "load",
    "load_collection",
    "parse",
    "parse_collection",
    "schema_text",
]
