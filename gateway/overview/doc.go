// Package overview shows operators the entries of all features that need attention.
package overview
