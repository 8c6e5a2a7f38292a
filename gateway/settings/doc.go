// Package settings is what the configuration says: a struct for each section, with its
// default and what can be judged without the engines that work by it. Package config
// reads the file into it, and package gateway is made from it.
package settings
