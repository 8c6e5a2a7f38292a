// Package questions explains requests that are not made, and holds existing resources against the policies.
package questions
