// Package version names the build.
package version

// Version is set by the release build with -ldflags -X.
var Version = "0.1.0-dev"
