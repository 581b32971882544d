# shellcheck shell=bash disable=SC2034
jars=@JARS@
archive=@CLASSES@
node=@NODE@
