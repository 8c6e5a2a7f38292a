// Package platform creates the clients of the platform's REST API and run interface from the configuration.
package platform
