// Package ui serves two web consoles: the pages for operators under [Path] on the admin listener, and the pages for callers, called My
// team, under [teamPath] on the data listener.
//
// A page for operators is a template over responses of the admin API. It calls each endpoint through an [adminapi.Invoker], in the same way
// as the route of the endpoint. A page therefore shows nothing that the API does not return, and the role of the principal is checked in
// one place. A form posts the parameters of an endpoint that changes something.
//
// A page for callers is a template over responses of the data listener, requested with the key or token of the session. These requests are
// authenticated, limited and recorded like any other request.
//
// Users log in with a token. A session stores the token in the store that all gateways share, encrypted with a key derived from the
// cookie's value. Each request validates the token again, so a session ends when its token is revoked or expires. Tokens that result from a
// login at an issuer are validated as of the login time. No route of the API reads the cookie.
//
// The pages work without scripts, and the state of a page is in its URL. The script enhances pages, for example by adding new decisions to
// the Requests page as they occur.
package ui
