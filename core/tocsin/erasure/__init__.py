"""Erasure of a person's data, or any other value, from everything that is stored."""

from tocsin.erasure.eraser import Eraser, ErasureRequest, parse_entity

__all__ = ["Eraser", "ErasureRequest", "parse_entity"]
