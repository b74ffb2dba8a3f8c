"""Settings of the investigator and their effects."""

import pytest
from investigator_cases import CASES
from investigator_world import World, incident, investigate, ip
from pydantic import ValidationError

from tocsin import FindEvents, Persona, Section
from tocsin_plugins.investigator import DefaultInvestigator, tocsin_investigators
from tocsin_plugins.investigator.correlation import RULES
from tocsin_plugins.investigator.settings import Weights

Settings = DefaultInvestigator.Settings


def test_the_plugin_offers_the_investigator():
    assert tocsin_investigators() is DefaultInvestigator


def test_everything_has_a_default_and_a_description():
    assert set(Settings().bounds) == set(Persona)
    for model in (Settings, Weights, type(Settings().bounds[Persona.ANALYST])):
        assert all(field.description for field in model.model_fields.values())


def test_every_rule_has_a_weight_and_every_weight_a_rule():
    kinds = {name.replace("_", "-") for name in Weights.model_fields}
    assert kinds == {"severity", *RULES} - {"incident"}


def test_a_bound_that_is_given_leaves_the_others_as_they_are():
    bounds = Settings.model_validate({"bounds": {"analyst": {"depth": 2}}}).bounds
    assert bounds[Persona.ANALYST].depth == 2
    assert bounds[Persona.ANALYST].entities == Settings().bounds[Persona.ANALYST].entities
    assert bounds[Persona.EXECUTIVE] == Settings().bounds[Persona.EXECUTIVE]


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": {"severty": 3}},
        {"weights": {"severity": 1000}},
        {"bounds": {"intern": {"depth": 1}}},
        {"bounds": {"analyst": {"depth": 4}}},
        {"bounds": {"analyst": {"deep": 1}}},
        {"bounds": {"analyst": 3}},
        {"bounds": 3},
        {"default_window": "0s"},
        {"weights": {"burst": "4"}},
        {"bounds": {"analyst": {"depth": "2"}}},
        {"everywhere": "4"},
        {"events_per_question": "4"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)


async def test_weights_change_the_score():
    truth = next(case for case in CASES if case.name == "a brute force that succeeded")
    usual, _ = await investigate(truth.world, truth.query)
    weights = {"weights": {"success_after_failures": 0}}
    other, _ = await investigate(truth.world, truth.query, settings=weights)
    assert other.risk_score == pytest.approx(usual.risk_score - 45)
    assert "success-after-failures" not in {
        contribution.name for contribution in other.contributions
    }


async def test_personas_differ_in_what_is_shown_and_asked():
    entities = tuple(ip(f"203.0.113.{number}") for number in range(60))
    world = World(incidents=[incident(1, entities=entities)])
    asked, shown = {}, {}
    for persona in Persona:
        report, client = await investigate(world, "#1", persona=persona)
        asked[persona] = len(client.of_kind(FindEvents))
        shown[persona] = report.sections
    assert asked[Persona.EXECUTIVE] < asked[Persona.ANALYST] < asked[Persona.THREAT_HUNTER]
    assert Section.TIMELINE not in shown[Persona.EXECUTIVE]
    assert shown[Persona.INCIDENT_RESPONDER][0] is Section.ACTIONS
