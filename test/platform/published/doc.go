// Package published holds request bodies against the platform's published description: the
// schemas of its request bodies without prose. There is one difference: createEndpoint
// requires neither name nor type, since a template has its name and a queue needs no type at
// the platform. It shares nothing with the gateway's own description, which is wider.
package published
