-- What companies publish to be read by anybody. Portable to SQLite and PostgreSQL.

-- `tags` and `asset_ids` are JSON arrays. Slugs are unique over all companies: a post is read by it alone.
CREATE TABLE posts (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    title TEXT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    summary TEXT NOT NULL,
    body_markdown TEXT NOT NULL,
    cover_image_url TEXT,
    tags TEXT NOT NULL,
    asset_ids TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('draft', 'published')),
    view_count BIGINT NOT NULL,
    published_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CHECK ((status = 'published') = (published_at IS NOT NULL))
);
CREATE INDEX posts_by_company ON posts (company_id, created_at);
CREATE INDEX posts_published ON posts (published_at) WHERE status = 'published';

-- Who has read what on a day, so that nobody is counted twice: `reader` is a digest of an address. Rows of former days go.
CREATE TABLE post_views (
    post_id TEXT NOT NULL,
    viewed_on BIGINT NOT NULL,
    reader TEXT NOT NULL,
    PRIMARY KEY (post_id, viewed_on, reader)
);
