module github.com/tuneplane/tp

go 1.26.0

require (
	github.com/pelletier/go-toml/v2 v2.4.3
	go.yaml.in/yaml/v4 v4.0.0
)
