// Package limits is what operators ask of quotas.
package limits
