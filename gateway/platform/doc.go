// Package platform makes the clients of the platform and of its run interface, as a configuration has them.
package platform
