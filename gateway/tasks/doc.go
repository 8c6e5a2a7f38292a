// Package tasks runs background work: tasks that run as long as the process under a [Supervisor], work that outlives its request, and
// batched writes.
package tasks
