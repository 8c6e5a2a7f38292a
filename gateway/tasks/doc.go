// Package tasks runs background work: tasks that run until shutdown ([Lifecycle]) and are restarted after a panic ([Supervisor]), work that
// continues after its request has ended ([Group]), and batched writes ([Batcher]).
package tasks
