"""The table of all subjects: every endpoint and topic, with their streams and buckets.

The docs page, the NATS permissions in ``deploy/``, the stream filters and the span names are generated from it.
``trunkline.<plane>.<area>.<key...>.<verb or fact>``; the planes are ``cmd`` (request and reply), ``turn`` (the
durable inbox), ``schedule`` (what is due later), ``journal``, ``feed``, ``evt`` (facts), ``count`` (counters), ``ctl``
(operators; never queued), ``x`` (plugins' own) and ``dead`` (dead letters).
"""
# ruff: noqa: F403  one table in several files; listing its names here would repeat the table

from trunkline.contracts.agents.subjects import *
from trunkline.contracts.approvals.subjects import *
from trunkline.contracts.audit.subjects import *
from trunkline.contracts.auth.subjects import *
from trunkline.contracts.channels.subjects import *
from trunkline.contracts.costs.subjects import *
from trunkline.contracts.gateway.subjects import *
from trunkline.contracts.memory.subjects import *
from trunkline.contracts.models.subjects import *
from trunkline.contracts.plugins.subjects import *
from trunkline.contracts.push.subjects import *
from trunkline.contracts.schedules.subjects import *
from trunkline.contracts.streams import *
from trunkline.contracts.tools.subjects import *
from trunkline.contracts.topology import *
from trunkline.contracts.turns.subjects import *
from trunkline.contracts.workers.subjects import *
