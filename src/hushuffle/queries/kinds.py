"""All types of queries, in the order in which messages list them."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import Field

from hushuffle.queries.aggregate import Aggregate, AggregateQuery
from hushuffle.queries.histogram import Histogram, HistogramQuery
from hushuffle.queries.k_means import KMeans, KMeansQuery
from hushuffle.queries.query import Query

AnyQuery: TypeAlias = Annotated[AggregateQuery | KMeansQuery | HistogramQuery, Field(discriminator="kind")]
AnyTask: TypeAlias = Annotated[Aggregate | KMeans | Histogram, Field(discriminator="kind")]
QUERIES: Final[tuple[type[Query], ...]] = (AggregateQuery, KMeansQuery, HistogramQuery)
