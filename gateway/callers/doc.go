// Package callers is who may call: the keys of the configuration, and those made at run time, by operators and by leads of teams.
package callers
