//! Pages of a feed as one answer: each is handed in when it has come, and what can leave then is handed out.

use arrow_ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::arrow::Layout;
use super::csv;
use super::kinds::{Format, Unfit};
use crate::columns::Output;
use crate::json::{self, Field};

/// Columns, times pages, of one Parquet file. Its end tells of each where it is and what it has, which is a kilobyte or so in memory until then:
/// pages may be of one row, and an export lasts for an hour.
const CHUNKS_MAX: u64 = 128 << 10;

/// What has to be known of the pages before. The first page decides what the columns of Arrow and Parquet are.
pub struct Stream {
    format: Format,
    pages: u64,
    layout: Option<Layout>,
    writer: Option<Writer>,
}

enum Writer {
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
}

impl Stream {
    pub fn new(format: Format) -> Stream {
        Stream {
            format,
            pages: 0,
            layout: None,
            writer: None,
        }
    }

    /// The first `rows` rows of the next page.
    pub fn write(
        &mut self,
        output: Output,
        fields: &[Field],
        rows: usize,
    ) -> Result<Vec<u8>, Unfit> {
        self.pages += 1;
        let mut out = Vec::new();
        match self.format {
            Format::Json | Format::JsonLines => {
                json::write_lines(&mut out, &output, fields, 0..rows);
            }
            Format::Csv => {
                if self.pages == 1 {
                    csv::write_head(&mut out, fields);
                }
                csv::write_rows(&mut out, &output, fields, 0..rows);
            }
            Format::Arrow | Format::Parquet => return self.write_columns(output, fields, rows),
        }
        Ok(out)
    }

    fn write_columns(
        &mut self,
        output: Output,
        fields: &[Field],
        rows: usize,
    ) -> Result<Vec<u8>, Unfit> {
        let chunks = self.pages.saturating_mul(fields.len() as u64);
        if self.format == Format::Parquet && chunks > CHUNKS_MAX {
            return Err(Unfit::Pages(self.pages - 1));
        }
        let layout = self
            .layout
            .get_or_insert_with(|| Layout::of(&output, fields, rows));
        let batches = layout.batches(output, fields, rows)?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(Writer::new(self.format, layout)?),
        };
        match writer {
            Writer::Arrow(writer) => {
                for batch in &batches {
                    writer.write(batch).map_err(failed)?;
                }
                writer.flush().map_err(failed)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Writer::Parquet(writer) => {
                for batch in &batches {
                    writer.write(batch).map_err(failed)?;
                }
                // A page is a row group, so that no more than one is kept.
                writer.flush().map_err(failed)?;
                Ok(std::mem::take(writer.inner_mut()))
            }
        }
    }

    /// What stands behind the last page.
    pub fn finish(&mut self) -> Result<Vec<u8>, Unfit> {
        match self.writer.take() {
            None => Ok(Vec::new()),
            Some(Writer::Arrow(mut writer)) => {
                writer.finish().map_err(failed)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Some(Writer::Parquet(mut writer)) => {
                writer.finish().map_err(failed)?;
                // What its own buffer still has.
                writer.sync().map_err(failed)?;
                Ok(std::mem::take(writer.inner_mut()))
            }
        }
    }
}

impl Writer {
    fn new(format: Format, layout: &Layout) -> Result<Writer, Unfit> {
        let schema = layout.schema.clone();
        Ok(match format {
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .set_created_by("souk".to_owned())
                    .build();
                let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties));
                Writer::Parquet(Box::new(writer.map_err(failed)?))
            }
            _ => {
                let writer = StreamWriter::try_new(Vec::new(), &schema);
                Writer::Arrow(Box::new(writer.map_err(failed)?))
            }
        })
    }
}

fn failed(error: impl std::fmt::Display) -> Unfit {
    Unfit::Writer(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Column, ColumnKind};

    /// What is kept of a Parquet file until its end is bounded, however small its pages are. Other formats keep nothing.
    #[test]
    fn a_parquet_file_has_so_many_pages() {
        let column = Column {
            name: "c".to_owned(),
            kind: ColumnKind::Int64,
            nullable: true,
            native: String::new(),
        };
        let output = Output::new(vec![column].into(), Vec::new(), 0);
        let fields = [Field::new(0, "a"), Field::new(0, "b")];
        let after = |format, pages| {
            let mut stream = Stream::new(format);
            stream.pages = pages;
            stream.write(output.clone(), &fields, 0).map(drop)
        };
        let most = CHUNKS_MAX / 2;
        assert_eq!(after(Format::Parquet, most - 1), Ok(()));
        assert_eq!(after(Format::Parquet, most), Err(Unfit::Pages(most)));
        for format in [Format::Arrow, Format::Csv, Format::JsonLines] {
            assert_eq!(after(format, most), Ok(()), "{format:?}");
        }
    }
}
