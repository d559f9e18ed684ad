"""Judges what Namecast plays: inputs made by ffmpeg, each with a number in every picture and a tone that changes each second."""
