"""Whisper on OpenVINO: the engine of x86 processors that multiply bytes (VNNI) and perhaps bfloat16.

Rows, threads and the number of keys leave the bits alone, by construction: docs/decisions/0016-openvino.md.
"""
