// Package tasks runs work behind answers: work that outlives the request it was begun for, and writings that are made at once.
package tasks
