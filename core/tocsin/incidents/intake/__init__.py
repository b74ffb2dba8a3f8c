"""Pushes that an intake accepts: their positions, and their storage."""

from tocsin.incidents.intake.accepted_pushes import AcceptedPushes
from tocsin.incidents.intake.losses import LOST_PUSHES
from tocsin.incidents.intake.positions import IntakeBacklog, list_backlogs
from tocsin.incidents.intake.reader import IntakeReader

__all__ = ["LOST_PUSHES", "AcceptedPushes", "IntakeBacklog", "IntakeReader", "list_backlogs"]
