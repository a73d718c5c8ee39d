"""From the bytes of a file to the windows and mel features that a model sees.

The way of the audio: `sources`, `containers` with `readers`, `ffmpeg` and `timeline`, `downmix`,
`resampling`, `stream`, `windows`, `vad`, `log_mel`.

It may import `system` and `domain`.
"""
