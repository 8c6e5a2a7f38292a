// Package answers shows operators the requests for approval, and takes their answers.
package answers
