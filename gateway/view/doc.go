// Package view provides the configuration in force, values derived from the configuration and from keys created at run time, and the
// gateway's clock.
package view
