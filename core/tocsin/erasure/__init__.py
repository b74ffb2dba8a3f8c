"""Erasure of a person's data, or any other value, from everything that is stored."""

from tocsin.erasure.eraser import PURPOSE, Eraser, ErasureRequest, parse_entity

__all__ = ["PURPOSE", "Eraser", "ErasureRequest", "parse_entity"]
