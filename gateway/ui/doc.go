// Package ui serves the console: pages of the operators' listener for people, below [Path], and My team, pages of the data listener for
// callers, below [TeamPath].
//
// A page of operators is a template over the answers of admin rows. It asks each row by [adminapi.Invoker], as its route does, so that a page
// shows nothing that the API does not have, and the role of the asker is checked in one place. A form posts the parameters of a row that
// changes something.
//
// A page of callers is a template over answers of the data listener, asked with the key or token of the session: identity, limits, roles and
// records are those of any request.
//
// People log in with a token. A session keeps the token sealed under the cookie's value, in the store that all gateways share, and each
// request finds the holder of the token anew: a session ends with its token. No route of the API reads the cookie.
//
// The pages work without scripts. The state of a page is its URL. The one script shows decisions as they are made.
package ui
