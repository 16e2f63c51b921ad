"""The demo."""


def run_demo() -> int:
    """Placeholder"""
    return 0
