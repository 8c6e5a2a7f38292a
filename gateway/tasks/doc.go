// Package tasks runs work beside requests: tasks that live as long as the process, under a
// [Supervisor]; work that outlives the request it was begun for; and writes that are made in batches.
package tasks
