// Package engines makes the policy engine of a configuration, tells how its policies are doing, and tries drafts of policies.
package engines
