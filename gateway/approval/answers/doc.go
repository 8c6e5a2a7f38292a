// Package answers is what operators ask of requests for approval, and how they answer them.
package answers
