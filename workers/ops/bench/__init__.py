"""`millstream bench`: our pipeline beside its peers on this machine, in one run; each part is a file.

`figures`: rows, targets, verdicts. `stack`: our processes on a server of their own. `truth`: what became of each
message. `load`, `feed`, `platform`: programs that send and receive. `venvs`, `chains`, `peers/`: the others. `known`:
conversations that are there already. `scenes/`: what is measured. `run`: all of it.
"""
