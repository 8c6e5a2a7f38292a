// Package view holds what is in force: the configuration, and what follows from it and from the keys made at run time.
package view
