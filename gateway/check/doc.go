// Package check checks a configuration with the engines.
package check
