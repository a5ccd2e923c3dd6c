"""Films: the ticks of a replay, of a policy or of random play, as pictures of one size; GIF with Pillow, MP4 with PyAV.

Both come with the extra `video`. A GIF has one palette for all frames and stores only what changed, so that a film of
a world stays small.
"""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridmill.config.files import write_named
from gridmill.config.install import pip_install
from gridmill.env import Env
from gridmill.env.picture import Picture
from gridmill.evaluate import load_trained
from gridmill.games.make import make
from gridmill.run import Run

GIF_COLOURS = 128
LAST = 1.0  # seconds that a GIF rests before it begins again


def random_moments(game: Any, seed: int, world: int = 0) -> Generator[Env, None, None]:
    """A game that is played at random for as long as somebody looks."""
    with make(game, num_worlds=world + 1, seed=seed) as env:
        env.reset()
        rng = np.random.default_rng(seed)
        while True:
            yield env
            env.step(rng.integers(0, env.num_actions, size=env.num_rows, dtype=np.int32))


def policy_moments(run: Run, policy: str, seed: int, world: int = 0) -> Generator[Env, None, None]:
    """The game of a run, played by its policy for as long as somebody looks."""
    player = load_trained(policy)
    with make(run.played_game, num_worlds=world + 1, seed=seed, masks=player.masks) as env:
        player.bind(env, seed)
        env.reset()
        state: Any = None
        while True:
            yield env
            actions, state = player.act(env.obs, state, env.masks)
            env.step(actions)
            state = player.reset(state, env.terminals | env.truncations)


def frames(
    shown: Generator[Env, None, None], first: int, last: int, every: int, scale: int, legend: bool, world: int = 0
) -> Iterator[Picture]:
    """Pictures of the ticks from `first` to before `last`, one in `every`."""
    with closing(shown):
        for env in islice(shown, first, last, every):
            picture: Picture = env.picture(world, scale, legend)
            yield picture


def write(path: Path, pictures: Iterable[Picture], rate: float) -> int:
    """A film at so many frames a second, by the ending of the file's name; how many frames there are."""
    listed = iter(pictures)
    start = next(listed, None)
    if start is None:
        raise ValueError("expected at least one tick to show, got none: check --from and --to")
    film = io.BytesIO()  # so that a full disk leaves what was there before
    count = (_write_gif if path.suffix.lower() == ".gif" else _write_mp4)(film, chain([start], listed), rate)
    write_named(path, film.getvalue())
    return count


def _write_gif(film: io.BytesIO, pictures: Iterator[Picture], rate: float) -> int:
    image = _needed("PIL.Image", "pillow")
    found: list[Any] = []
    palette = None
    for picture in pictures:
        one = image.fromarray(picture)
        if palette is None:
            palette = one.quantize(GIF_COLOURS)
        found.append(one.quantize(palette=palette, dither=image.Dither.NONE))
    pause = max(20, round(1000 / rate))  # browsers play what is faster than this slowly
    times = [pause] * (len(found) - 1) + [max(pause, round(1000 * LAST))]
    found[0].save(
        film, "GIF", save_all=True, append_images=found[1:], duration=times, loop=0, optimize=True, disposal=1
    )
    return len(found)


def _write_mp4(film: io.BytesIO, pictures: Iterator[Picture], rate: float) -> int:
    av = _needed("av", "av")
    count = 0
    with av.open(film, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=round(rate))
        stream.pix_fmt = "yuv420p"  # what every player knows
        for picture in pictures:
            even = _even(picture)
            if count == 0:
                stream.height, stream.width = even.shape[:2]
            file.mux(stream.encode(av.VideoFrame.from_ndarray(even, format="rgb24")))
            count += 1
        file.mux(stream.encode())
    return count


def _even(picture: Picture) -> NDArray[np.uint8]:
    """Videos have an even number of rows and columns."""
    height, width, _ = picture.shape
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")


def _needed(module: str, package: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of what these packages import
            return importlib.import_module(module)
    except ModuleNotFoundError:
        raise ValueError(f"videos need {package}: {pip_install('gridmill[video]')}") from None
