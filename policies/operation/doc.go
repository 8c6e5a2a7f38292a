// Package operation describes the operations that the gateway knows: the operations of the v2 API and of the run interface. Each
// operation has one [Spec], which contains its subject, its effect, its price, and the resources that must be read before policies can be
// evaluated. All differences between operations follow from their specs.
//
// The specs of v2 are compared with the API's description at startup and by `tollgate check --coverage`; an operation that only one
// of the two contains is an error.
//
// The package also has the functions that read values of decoded JSON for the packages that derive states and prices from bodies.
package operation
