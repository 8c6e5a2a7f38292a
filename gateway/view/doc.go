// Package view provides the configuration in force together with values derived from it and from keys created at run time, and the
// gateway's clock.
package view
