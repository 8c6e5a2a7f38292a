// Package platform creates the clients of the platform and of its run interface from a configuration.
package platform
