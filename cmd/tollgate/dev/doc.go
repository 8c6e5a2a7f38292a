// Package dev is the local development server of serverless functions: tollgate dev.
//
// A project is a directory of Python files whose functions are endpoints. [Read] learns
// them from the source, in a python3 that imports and runs nothing of the project, or
// from tollgate-dev.yaml, whose endpoints are images. [Server] has a route for each and
// runs its calls on the platform. [Session] makes, changes and takes over the endpoints
// that the calls require, and [State] remembers them in .tollgate of the project.
//
// The package is a client of a gateway like any other: it speaks the REST API and the
// run interface with a developer's key, so everything it rents is judged, priced and
// owned there. It knows nothing of the gateway's inside.
package dev
