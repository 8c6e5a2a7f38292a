// Package view holds what is in force, as values: the configuration, what follows from it and from the keys made at run time, and the clock.
package view
