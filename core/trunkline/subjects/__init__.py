"""The one table of what is said where: every endpoint and topic, with the streams and buckets that keep them.

The docs page, the NATS permissions in ``deploy/``, the stream filters and the span names are drawn from here.
``trunkline.<plane>.<area>.<key...>.<verb or fact>``; planes: ``cmd`` request and reply, ``turn`` the durable inbox,
``journal``, ``feed``, ``evt`` facts, ``ctl`` operators (never queued), ``x`` plugins' own, ``dead`` letters.
"""
# ruff: noqa: F403  one table in several files; to list its names here again would be a second table

from trunkline.subjects.apart import *
from trunkline.subjects.approvals import *
from trunkline.subjects.audit import *
from trunkline.subjects.channels import *
from trunkline.subjects.gateway import *
from trunkline.subjects.memory import *
from trunkline.subjects.models import *
from trunkline.subjects.streams import *
from trunkline.subjects.tools import *
from trunkline.subjects.topology import *
from trunkline.subjects.turns import *
from trunkline.subjects.watching import *
