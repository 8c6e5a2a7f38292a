// Package engines makes the policy engine of a configuration, and tells how its policies are doing.
package engines
