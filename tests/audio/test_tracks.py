"""Of several tracks the default is heard, or the one that is asked for; so with channels."""

import io

import av
import numpy as np
import pytest
import soundfile
from av.stream import Disposition

from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.tracks import AudioChoice, channel_choice, track_choice
from as2d_cli.domain.errors import AudioError, RequestError

RATE = 16_000


def film(*tracks, container="matroska"):
    """Return a file with tracks of constant level 0.1, 0.2, ...: (language, title, is_default)."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        streams = []
        for language, title, is_default in tracks:
            stream = output.add_stream("pcm_s16le", rate=RATE, layout="mono")
            stream.metadata.update({"language": language} | ({"title": title} if title else {}))
            stream.disposition = Disposition.default if is_default else Disposition.original
            streams.append(stream)
        for number, stream in enumerate(streams, 1):
            samples = np.full((1, RATE), round(number * 3276.8), np.int16)
            frame = av.AudioFrame.from_ndarray(samples, "s16", "mono")
            frame.sample_rate = RATE
            output.mux([*stream.encode(frame), *stream.encode()])
    return file


def heard(file, track=None, channel=None):
    """Return which of the levels 0.1, 0.2, ... is heard, and the warnings."""
    stream = open_audio(file, AudioChoice(track, channel))
    level = float(np.concatenate(list(stream.blocks())).mean())
    return round(level * 10, 2), stream.warnings


FRENCH, ENGLISH, COMMENTS = ("fre", None, False), ("eng", None, True), ("eng", "Commentary", False)


def test_the_default_track_is_heard_and_all_are_named():
    level, warnings = heard(film(FRENCH, ENGLISH, COMMENTS))
    assert level == 2
    assert warnings == ['has 3 audio tracks (1: fre, 2: eng, 3: eng "Commentary"); only track 2 was heard']


def test_without_a_default_the_first_track_is_heard():
    level, warnings = heard(film(FRENCH, COMMENTS))
    assert level == 1
    assert warnings == ['has 2 audio tracks (1: fre, 2: eng "Commentary"); only the first was heard']


@pytest.mark.parametrize(("track", "number"), [("1", 1), ("3", 3), ("fr", 1), ("en", 2)])
def test_a_track_is_chosen_by_number_or_language(track, number):
    assert heard(film(FRENCH, ENGLISH, COMMENTS), track) == (number, [])


@pytest.mark.parametrize("track", ["4", "de"])
def test_a_track_that_is_not_there_is_an_error_that_names_those_that_are(track):
    with pytest.raises(AudioError, match=f"no audio track {track}") as caught:
        open_audio(film(FRENCH, ENGLISH, COMMENTS), AudioChoice(track))
    assert caught.value.hint == 'its audio tracks: 1: fre, 2: eng, 3: eng "Commentary"'


def test_a_title_cannot_write_to_the_terminal():
    _, (warning,) = heard(film(("eng", "\x1b[31mred\n", True), FRENCH))
    assert warning.isprintable()


def sound(*levels):
    file = io.BytesIO()
    soundfile.write(file, np.tile(np.array(levels) / 10, (RATE, 1)), RATE, format="WAV", subtype="FLOAT")
    return file


def test_a_recording_of_one_track_is_in_any_language():
    assert heard(sound(1), "de")[0] == 1
    assert heard(sound(1), "1")[0] == 1
    with pytest.raises(AudioError, match="no audio track 2"):
        open_audio(sound(1), AudioChoice("2"))


@pytest.mark.parametrize(("channel", "level"), [(None, 2), ("mix", 2), ("1", 1), ("2", 3)])
def test_a_channel_is_chosen_by_number(channel, level):
    assert heard(sound(1, 3), channel=channel)[0] == level


def test_mono_is_heard_as_it_is():
    assert heard(sound(4), channel="2")[0] == 4


def test_a_channel_that_is_not_there_is_an_error():
    with pytest.raises(AudioError, match="no channel 3") as caught:
        heard(sound(1, 2), channel="3")
    assert caught.value.hint == "it has 2"


def test_choices_are_understood_as_people_write_them():
    assert [track_choice(text) for text in (None, "auto", " 2", "English", "eng", "de-AT")] == [
        *(None, None, "2", "en", "en", "de")
    ]
    assert [channel_choice(text) for text in (None, "auto", "Left", "right", "mix", "08")] == [
        *(None, None, "1", "2", "mix", "8")
    ]


@pytest.mark.parametrize("text", ["0", "1000", "zzzz", ""])
def test_what_is_no_choice_is_refused(text):
    with pytest.raises(RequestError, match=r"--audio-track (cannot be|is no number from 1, and there is no)"):
        track_choice(text)
    with pytest.raises(RequestError, match="--channel cannot be"):
        channel_choice(text)
