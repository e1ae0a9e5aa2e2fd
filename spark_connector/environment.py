"""Checks for Java before Spark does, with a shorter error."""

import os
import shutil
from pathlib import Path


class MissingJavaError(RuntimeError):
    """Spark runs on the JVM, and no Java was found."""


def require_java() -> Path:
    """The `java` that Spark will start.

    Raises:
        MissingJavaError: neither `JAVA_HOME` nor the `PATH` leads to one.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if java.is_file():
            return java
        raise MissingJavaError(
            f"JAVA_HOME is {home}, but there is no bin/java in it: "
            "point it at a JDK 17 or later, or unset it to use the java on the PATH"
        )
    found = shutil.which("java")
    if found is None:
        raise MissingJavaError(
            "Spark needs Java 17 or later, and none was found: install a JRE "
            "(Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
        )
    return Path(found)
