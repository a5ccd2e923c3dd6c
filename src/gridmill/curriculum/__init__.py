"""Curriculum: which variant of a game each world plays next. Settings, tasks, and the one authority that chooses.

A task is a variant of a game and its id is a number from which its values follow. Nothing wraps the env: the trainer
tells the authority which worlds began an episode and which episodes ended, and the authority assigns compiled games.
"""

from gridmill.curriculum.authority import Curriculum
from gridmill.curriculum.config import CurriculumConfig, Range, TaskSet, Values
from gridmill.curriculum.record import record, short_settings
from gridmill.curriculum.tasks import Task, Tasks

__all__ = ["Curriculum", "CurriculumConfig", "Range", "Task", "TaskSet", "Tasks", "Values", "record", "short_settings"]
