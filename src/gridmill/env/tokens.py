"""Bytes of token observations, as the core writes them (`native/core/tokens.hpp`): location, feature, value."""

GLOBAL_LOCATION = 0xFE  # of a token that belongs to no cell; cells are below
NO_TOKEN = 0xFF  # every byte behind a row's last token
