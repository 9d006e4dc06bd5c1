"""Chunks: their files and layers, and the contract of the chunk index."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.memory.chunk import ChunkFile as ChunkFile
    from trunkline.contracts.memory.chunk_files import ChunkPath as ChunkPath
    from trunkline.contracts.memory.chunk_files import decode_chunk as decode_chunk
    from trunkline.contracts.memory.chunk_files import is_chunk_id as is_chunk_id
    from trunkline.contracts.memory.chunk_files import parse_chunk_path as parse_chunk_path
    from trunkline.contracts.memory.chunk_index import ChunkIndex as ChunkIndex
    from trunkline.contracts.memory.chunk_index import ChunkLocation as ChunkLocation
    from trunkline.contracts.memory.chunk_index import ChunkVisibility as ChunkVisibility
    from trunkline.contracts.memory.chunk_index import IndexProvider as IndexProvider
    from trunkline.contracts.memory.chunks import BrokenChunk as BrokenChunk
    from trunkline.contracts.memory.chunks import ChunkCounts as ChunkCounts
    from trunkline.contracts.memory.chunks import ChunkPage as ChunkPage
    from trunkline.contracts.memory.chunks import ChunksLinked as ChunksLinked
    from trunkline.contracts.memory.layers import LAYERS as LAYERS
    from trunkline.contracts.memory.layers import LayerLocation as LayerLocation
    from trunkline.contracts.memory.layers import layer_of as layer_of
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
