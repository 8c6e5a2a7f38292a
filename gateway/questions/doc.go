// Package questions answers what would become of a request, and what policies would say of what there is.
package questions
