// Package dev implements tollgate dev, a local development server for serverless functions.
//
// A project is a directory with Python files whose functions are deployed as endpoints. [Python.Read] finds them by parsing the source with
// python3, without importing or running any code of the project, or reads tollgate-dev.yaml, whose endpoints are images. [Server] has a
// route for each function and runs its calls on the platform. [Session] creates, changes and adopts the endpoints that calls need, and
// [State] stores them in the directory .tollgate of the project.
//
// The package is an ordinary client of a gateway: it uses the REST API and the run interface with a developer's key, so the gateway checks,
// prices and attributes everything it creates. It does not depend on the gateway's implementation.
package dev
