module github.com/tuneplane/tp

go 1.26.0
