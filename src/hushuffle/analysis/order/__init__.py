"""Privacy of the order: who sent what, when records move only a little."""
